"""For those who write agents and instances: connect, claim, renew, check before create."""
