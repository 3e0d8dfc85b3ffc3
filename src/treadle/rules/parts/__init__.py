"""Rules that stand for several, written out as ordinary rules (`written_out.written_out`)."""
