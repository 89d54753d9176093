"""No public learner is left out of the fuzz tests."""

from subjects import SUBJECTS

from regretless.core.registry import public_learners


def test_every_public_learner_is_a_subject():
    missing = public_learners().keys() - {type(subject.learner).__name__ for subject in SUBJECTS}
    assert not missing, f"add these to tests/fuzz/subjects.py: {sorted(missing)}"
