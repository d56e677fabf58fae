import pytest

from hookloop.short_runs.find_lr import smooth, steepest


def test_a_single_hard_batch_is_not_taken_for_a_fall():
    rates = [10 ** (-7 + 8 * number / 99) for number in range(100)]
    # The loss falls at about 1e-3. At 3 one batch is hard, and the easy one after it is the lowest.
    losses = [2 - 1.8 / (1 + (1e-3 / rate) ** 1.2) for rate in rates]
    losses[92:95] = [0.9, 0.9, 0.05]
    smoothed = smooth(losses, max(losses))
    assert steepest(rates, smoothed) == pytest.approx(1e-3, rel=1)


def test_a_loss_that_is_lowest_among_the_smallest_rates_gives_no_suggestion():
    rates = [10 ** (-7 + 8 * number / 9) for number in range(10)]
    noise = [10.1, 8.8, 10.7, 11.0, 12.2, 11.4, 11.7, 12.3, 14.7, 25.9]
    assert steepest(rates, noise) is None
