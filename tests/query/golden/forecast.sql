SELECT FORECAST(rh, '2w', '6h') FROM air WHERE time >= '2024-01-01'
