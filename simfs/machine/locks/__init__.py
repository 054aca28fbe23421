"""The locks, one file a family: executable algorithms over cache lines, wait queues and the scheduler."""
