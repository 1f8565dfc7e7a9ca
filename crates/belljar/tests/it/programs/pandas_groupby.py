import numpy as np
import pandas as pd

df = pd.DataFrame({"city": ["Rome", "Oslo", "Rome", "Bern"], "year": [2023, 2023, 2024, 2024], "sales": [10.5, 20.0, np.nan, 7.25]})
print(df.groupby("city")["sales"].agg(["sum", "mean", "count"]))
print(df.pivot_table(index="city", columns="year", values="sales", aggfunc="sum", fill_value=0))
df["share"] = (df["sales"] / df["sales"].sum()).round(3)
print(df.sort_values("sales", ascending=False).to_string(index=False))
print(df.describe().loc[["mean", "max"]], df.isna().sum().to_dict(), df.dtypes, sep="\n")
df.to_csv("sales.csv", index=False)
print(pd.read_csv("sales.csv").merge(pd.DataFrame({"city": ["Rome"], "country": ["IT"]}), how="left").head())
df.info()
dates = pd.date_range("2024-01-30", periods=4, freq="D")
print(pd.Series(range(4), index=dates).resample("MS").sum(), pd.to_datetime(["2024-05-06"])[0].day_name())
