"""Where devices leave entries for one another: places that can read none of them."""
