"""The rows. Operators that no row can say are listed here, with where they are tested."""

TESTED_ELSEWHERE = {
    "cuda": "there is no device to go to: test_package.py",
    "_basic_index": "what x[key] records: test_print.py and tests/cpp/indexing_test.cpp",
}
