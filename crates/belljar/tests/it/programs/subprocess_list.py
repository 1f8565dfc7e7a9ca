# refused: import subprocess is refused ... --module subprocess
import subprocess

result = subprocess.run(["ls", "-l"], capture_output=True, text=True, check=True)
print(result.stdout)
