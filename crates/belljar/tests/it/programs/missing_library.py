# refused: No module named 'tensorflow' ... is not installed here
import tensorflow as tf

print(tf.constant(1))
