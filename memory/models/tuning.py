"""Calibrations and probes of an embedding model, and evaluations measured on this store."""

from __future__ import annotations

from django.db import models


class Calibration(models.Model):
    """The similarity of a relevant result, fitted on this store for one embedding model."""

    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=255)
    threshold = models.FloatField()
    sample = models.PositiveIntegerField(help_text="exchanges it was fitted on")
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "model"], name="one_calibration_a_model")]


class Probe(models.Model):
    """A probe for one trait of a message, fitted for one embedding model."""

    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=255)
    trait = models.CharField(max_length=40)
    weights = models.BinaryField(help_text="arrays of the probe in NumPy's npz format")
    examples = models.CharField(max_length=64, help_text="SHA-256 of the labelled sentences it was fitted on")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "model", "trait"], name="one_probe_a_trait")]


class Evaluation(models.Model):
    """One run of memory_eval for one strategy."""

    run = models.UUIDField(help_text="shared by the strategies of one run")
    at = models.DateTimeField(auto_now_add=True)
    strategy = models.CharField(max_length=40)
    questions = models.PositiveIntegerField()
    rephrased_by = models.CharField(max_length=255, help_text="the chat model or method that rephrased the questions")
    k = models.PositiveSmallIntegerField()
    recall = models.FloatField(help_text="share of questions whose exchange was among the first k")
    empty = models.FloatField(help_text="share of questions for which the gate passed nothing")
    median_ms = models.FloatField()
