"""No public learner is left out of the fuzz tests."""

from subjects import SUBJECTS, public_learners


def test_every_public_learner_is_a_subject():
    missing = public_learners() - {type(subject.learner) for subject in SUBJECTS}
    assert not missing, f"add these to tests/fuzz/subjects.py: {sorted(each.__name__ for each in missing)}"
