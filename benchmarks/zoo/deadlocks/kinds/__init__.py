"""The programs: one module a family, one function a program."""
