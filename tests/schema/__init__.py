"""The live OpenAPI document, taken at its word."""
