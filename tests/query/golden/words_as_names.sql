SELECT COUNT(*)
WHERE "and" > 3 AND "or" IS NULL AND "not" IN (1) AND box = 4 AND within < 5 AND near < 6 AND feature > 7
  AND ("not" > 1 AND "not" < 2)
