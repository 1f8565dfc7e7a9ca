# refused: import subprocess is refused ... `modules: ["subprocess"]`
import subprocess

result = subprocess.run(["ls", "-l"], capture_output=True, text=True, check=True)
print(result.stdout)
