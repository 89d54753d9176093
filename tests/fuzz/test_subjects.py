"""No public learner is left out of the fuzz tests."""

from subjects import SUBJECTS

from regretless.evaluate.registry import public_learners


def test_every_public_learner_is_a_subject():
    assert {type(subject.learner).__name__ for subject in SUBJECTS} == set(public_learners())
