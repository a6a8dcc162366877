"""The programs of a build folder, for the scripts beside this file."""
import os
import sys


def find(build, name):
    for folder, _, files in os.walk(build):
        if name in files and os.access(os.path.join(folder, name), os.X_OK):
            return os.path.abspath(os.path.join(folder, name))
    sys.exit(f"{build} holds no {name}: build it first")
