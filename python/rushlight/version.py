"""What this build is."""

__version__ = "0.1.0"
debug = False
cuda = None
hip = None
git_version = "unknown"
