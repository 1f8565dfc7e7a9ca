import os

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 2 * np.pi, 50)
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
left.plot(x, np.sin(x), label="sin")
left.set_title("Sine")
left.legend()
right.bar(["a", "b"], [3, 5], color=["tab:blue", "tab:orange"])
plt.tight_layout()
plt.savefig("chart.png", dpi=80)
plt.close(fig)
print(open("chart.png", "rb").read(4), os.path.getsize("chart.png") > 1000, len(plt.get_fignums()))
