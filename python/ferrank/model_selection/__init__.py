"""Choice of settings by cross-validation, and what rows without a target are worth."""
