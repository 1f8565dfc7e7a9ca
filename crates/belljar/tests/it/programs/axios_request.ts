// refused: module "axios" cannot be imported ... `context`
import axios from "axios";
const { data } = await axios.get("https://api.example.com");
console.log(data);
