"""``python -m rushlight.collect_env`` prints what a bug report should say of the machine."""

from .utils.collect_env import main

if __name__ == "__main__":
    main()
