import numpy as np

a = np.array([[2.0, 1.0], [1.0, 3.0]])
b = np.array([3.0, 5.0])
print(np.linalg.solve(a, b), np.linalg.det(a).round(6), np.linalg.eigvalsh(a).round(4))
rng = np.random.default_rng(42)
sample = rng.normal(size=1000)
print(round(float(sample.mean()), 4), np.percentile(sample, [5, 95]).round(3), np.histogram(sample, bins=4)[0])
m = np.arange(12).reshape(3, 4)
print(m[m % 2 == 0], m.T.shape, m.sum(axis=0), np.where(m > 5, 1, 0), np.concatenate([m, m]).shape, repr(m[1]))
try:
    np.array([1, 2]) @ np.array([1, 2, 3])
except ValueError as error:
    print("ValueError", str(error)[:20])
np.save("m.npy", m)
print(np.load("m.npy").mean(), np.isclose(0.1 + 0.2, 0.3))
