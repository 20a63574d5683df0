"""A process that forks while other threads work: no lock of ours stays locked in the child."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

SCRIPT = """
import os, random, signal, sys, threading, time, warnings
import numpy as np
from craftmaps import FourierFeatures, OnePassClassifier, OnePassRegressor
from craftmaps.threads import at_most_threads

warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
rounds = int(sys.argv[1])
rng = np.random.default_rng(0)
X, y = rng.standard_normal((3000, 8)), rng.integers(0, 3, 3000)
feature_map = FourierFeatures(n_components=128, random_state=0)
model = OnePassClassifier(feature_map, alpha=1.0).fit(X, y)
expected = model.predict(X)
learner = OnePassRegressor(feature_map, alpha=1.0, block_rows=512).partial_fit(X, y)
answers = [learner.partial_fit(X, y).coef_ for _ in range(1)]
stop = threading.Event()

def predict():
    while not stop.is_set():
        model.predict(X)

def limit():
    while not stop.is_set():
        with at_most_threads(1):
            time.sleep(0.0002)

def learn_and_solve():
    while not stop.is_set():
        fresh = OnePassRegressor(feature_map, alpha=1.0, block_rows=512).partial_fit(X, y)
        fresh.partial_fit(X, y)
        shared.append(fresh)
        del shared[:-3]
        fresh.coef_

shared = [learner]
threads = [threading.Thread(target=work) for work in (predict, limit, learn_and_solve)]
for thread in threads:
    thread.start()
for number in range(rounds):
    time.sleep(random.Random(number).uniform(0, 0.004))
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends a child that hangs
        good = (model.predict(X) == expected).all()
        for fresh in shared:  # perhaps solved by another thread at this moment
            solution = fresh.coef_
            if fresh.n_samples_seen_ == 6000:
                good &= np.allclose(solution, answers[0], rtol=1e-9, atol=1e-12)
        fresh.partial_fit(X[:5], y[:5])
        with at_most_threads(1):
            good &= np.isfinite(fresh.predict(X[:5])).all()
        os._exit(0 if good else 3)
    _, status = os.waitpid(child, 0)
    if status:
        stop.set()
        sys.exit(f"round {number}: the child ended with {os.waitstatus_to_exitcode(status)}")
stop.set()
for thread in threads:
    thread.join()
print("well")
"""


def run(rounds):
    # OpenBLAS ends its threads before a fork, and may wait for ever for one that another thread
    # uses. So it has no threads here, and the loops of this package have two.
    environment = os.environ | {"NUMBA_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(rounds)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout == "well\n", done.stderr


def test_a_fork_while_other_threads_work():
    run(10)


@pytest.mark.slow
def test_many_forks_while_other_threads_work():
    run(150)
