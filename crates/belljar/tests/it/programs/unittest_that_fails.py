import unittest


class TestMaths(unittest.TestCase):
    def test_add(self):
        self.assertEqual(1 + 1, 3)

    def test_fine(self):
        self.assertTrue(True)


if __name__ == "__main__":
    unittest.main()
