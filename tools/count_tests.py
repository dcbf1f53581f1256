"""Prints "passed failed skipped" of a JUnit report (ctest's, pytest's or GoogleTest's)."""

import sys
from xml.etree import ElementTree

passed = failed = skipped = 0
for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
    if case.find("failure") is not None or case.find("error") is not None:
        failed += 1
    elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        skipped += 1
    else:
        passed += 1
print(passed, failed, skipped)
