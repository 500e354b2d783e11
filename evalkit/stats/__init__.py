"""The statistics room: arrays in, `Interval` or a small frozen result out; no case, judge or file.

Rates and repeats: intervals, repeats, stability, strata. Two runs: pairs, compare, differences,
permutation. Decisions: floors, gate, sequential, multiplicity, selection, power, wording. Judges:
agreement and its parts, admission, recalibration, pairwise, ranking, length, reconstruction,
correction. Import from the module; scipy loads where it is used.
"""
