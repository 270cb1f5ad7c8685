"""Clients that mean harm, or know no better: what they send is refused, and nobody else notices."""
