"""May this judge judge? Anchors and labels, admission, known pairs, licences, corrected rates.

anchors, anchor_files, anchor_readers, anchor_checks   evidence from outside, and what is refused
labels, blind, label_items, sampling_plan, annotators  what people say, blind, and how it was drawn
scoring, admission, reconstruction, admission_run      a judge measured and ruled on
licence, licence_check, drift                          the file a gate demands, and when it ends
corrected                                              a judged rate without the judge's errors
real, real_figures, real_pairs                         recorded judges replayed: `make admit-real`
"""
