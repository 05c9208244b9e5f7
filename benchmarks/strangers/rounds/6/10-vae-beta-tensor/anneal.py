"""Cyclical KL weight (Fu et al. 2019) and a small run log."""
import csv
import math


class CyclicalBeta:
    def __init__(self, variable, period, ratio=0.5, top=1.0):
        self.variable, self.period, self.ratio, self.top = variable, period, ratio, top

    def set_for(self, step):
        t = (step % self.period) / (self.period * self.ratio)
        self.variable.assign(self.top * (0.5 - 0.5 * math.cos(math.pi * min(t, 1.0))))


class RunLog:
    def __init__(self, path, fields):
        self.file = open(path, "w", newline="")
        self.writer = csv.DictWriter(self.file, fields)
        self.writer.writeheader()

    def row(self, **values):
        self.writer.writerow({k: f"{float(v):.6g}" for k, v in values.items()})
        self.file.flush()
