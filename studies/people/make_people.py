"""Makes people.csv: opinions before and after an argument, drawn from stated latents. Nobody was asked.

A person holds an opinion x, normal with mean 0.2 and standard deviation 1.2, and reads one of two arguments, for
(s = 1) or against (s = -1). The opinion moves by 0.3 (1.5 s - x). Each rating is the opinion plus an error, normal with
standard deviation 0.4, rounded to a point from -2 to 2.
"""

import csv
from pathlib import Path

import numpy as np

OCCUPATIONS = ("carpenter", "clerk", "cook", "driver", "gardener", "nurse", "pupil", "retired", "shopkeeper", "teacher")

rng = np.random.default_rng(11)
rows = []
for number in range(40):
    side = 1 if number % 2 else -1
    opinion = rng.normal(0.2, 1.2)
    later = opinion + 0.3 * (1.5 * side - opinion)
    before, after = (int(np.clip(np.rint(each + rng.normal(0, 0.4)), -2, 2)) for each in (opinion, later))
    job = OCCUPATIONS[rng.integers(len(OCCUPATIONS))]
    low, high = {"pupil": (15, 20), "retired": (64, 86)}.get(job, (22, 64))
    argument, message = ("for", "quiet") if side > 0 else ("against", "shops")
    rows.append((f"P{number + 1:02d}", int(rng.integers(low, high)), job, argument, message, before, after))

with Path(__file__).with_name("people.csv").open("w", encoding="utf-8", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("person", "age", "occupation", "argument", "message", "before", "after"))
    writer.writerows(rows)
