"""What physics says: the recursive Newton-Euler algorithm, its terms and its specialisation to one robot."""
