"""Answers as text for a terminal: plain lines, no markup, hostile text made harmless."""
