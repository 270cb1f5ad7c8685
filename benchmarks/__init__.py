"""How fast the promises are kept: measured beside a bare server of the same kind and beside what else could be used."""
