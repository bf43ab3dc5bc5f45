"""What tests share: suites that every store passes, a provider that misbehaves, and small worlds to test in."""
