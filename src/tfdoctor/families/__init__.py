"""What rules are written with: the kit, and families that write evidence, price and outcome of a kind of rule."""
