from mean import mean


def test_mean():
    assert mean([1, 2, 6]) == 3
