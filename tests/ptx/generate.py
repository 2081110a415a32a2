#!/usr/bin/env python3
"""Writes tests/ptx/*.ptx that are made of one small kernel per instruction form: edge values in, expected words out.

Expected values come from exact.py and plain integers, never from the translator. Run from the root:
    python3 tests/ptx/generate.py
The files are kept in the repository; what is written by hand stays untouched. The order below is part of the result:
all draw from one sequence of random numbers."""
import random

random.seed(20160421)

import generate_conversions
import generate_floats
import generate_integers
import generate_memory
import generate_warps

generate_floats.float_arithmetic()
generate_conversions.conversions()
generate_conversions.comparisons()
generate_integers.integers()
generate_floats.approximations()
generate_warps.warps()
generate_warps.matrices()
generate_memory.atomics()
generate_memory.copies()
generate_memory.small_conversions()
