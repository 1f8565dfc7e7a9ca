import io
import sys
import unittest
from unittest.mock import MagicMock, call, mock_open, patch


def read_total(path):
    with open(path) as file:
        return sum(int(line) for line in file if line.strip())


class Mailer:
    def send(self, to, text):
        raise RuntimeError("no mail in tests")


def notify(mailer, users):
    for user in users:
        mailer.send(user, text=f"hello {user}")
    print("sent", len(users))
    return len(users)


class TestTotals(unittest.TestCase):
    def setUp(self):
        self.mailer = MagicMock(spec=Mailer)

    @patch("builtins.open", new_callable=mock_open, read_data="1\n2\n\n3\n")
    def test_reads(self, opened):
        self.assertEqual(read_total("numbers.txt"), 6)
        opened.assert_called_once_with("numbers.txt")

    @patch("builtins.print")
    def test_prints(self, printed):
        self.assertEqual(notify(self.mailer, ["a", "b"]), 2)
        self.assertEqual(self.mailer.send.call_args_list, [call("a", text="hello a"), call("b", text="hello b")])
        printed.assert_called_with("sent", 2)

    def test_captures(self):
        with patch("sys.stdout", new=io.StringIO()) as out:
            notify(self.mailer, [])
        self.assertEqual(out.getvalue(), "sent 0\n")

    def test_patches_a_class(self):
        with patch.object(Mailer, "send", return_value=None) as send, patch.dict("os.environ", {"KEY": "v"}):
            notify(Mailer(), ["x"])
            import os
            self.assertEqual((send.call_count, os.environ["KEY"]), (1, "v"))

    @unittest.skipIf(sys.version_info < (3, 8), "old")
    def test_raises(self):
        with self.assertRaisesRegex(RuntimeError, "no mail"):
            Mailer().send("x", "y")
        for n in range(2):
            with self.subTest(n=n):
                self.assertLess(n, 2)


suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestTotals)
outcome = unittest.TextTestRunner(stream=io.StringIO(), verbosity=2).run(suite)
print(outcome.testsRun, len(outcome.failures), len(outcome.errors), outcome.wasSuccessful())
unittest.main(argv=["x"], exit=False, verbosity=0)
print("after")
