// refused: module "express" cannot be imported ... There is no server
const express = require("express");
const app = express();
app.get("/", (req, res) => res.json({ ok: true }));
app.listen(3000);
