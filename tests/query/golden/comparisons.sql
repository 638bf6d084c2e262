SELECT COUNT(*) WHERE rh > 80 AND rh >= 80.5 AND rh < 9e20 AND 1e300 >= rh AND rh = -0.0 AND rh <> -1.5
