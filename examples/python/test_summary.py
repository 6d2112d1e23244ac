"""The application without a server: python3 -m unittest test_summary"""
import unittest

import summary
import weir


class Summary(unittest.TestCase):
    def test_a_week(self):
        with weir.testing.fake() as t:
            t.rate("summary", "20/s,burst=1")
            t.rate("model", "1000/s")
            weir.Client().enqueue("fanout")
            weir.Client().enqueue("fanout", id="again")  # as when the first one died behind its last line
            self.assertEqual(t.drain(), 2 + 1)
            self.assertEqual(len(t.jobs("summary")), 199)
            for _ in range(110):  # until the provider's pause of thirty seconds
                t.move(0.05)
                t.drain()
            self.assertEqual(len(summary.provider.sent), 101)
            t.move(30)
            for _ in range(120):
                t.drain()
                t.move(0.05)
            sent = [to for to in summary.provider.sent if "@" in to]
            self.assertEqual((len(sent), len(set(sent))), (199, 199))
            self.assertEqual(list(t.dead.values()), ["no such address"])
            self.assertEqual(t.jobs("report"), [])


if __name__ == "__main__":
    unittest.main()
