"""What a delta action is measured against: other ways to explain the same logs, and one score for all."""
