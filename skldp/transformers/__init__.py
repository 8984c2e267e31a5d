"""scikit-learn transformers: perturbers that randomise records, and a scaler with public bounds."""
