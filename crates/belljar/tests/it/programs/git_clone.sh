# refused: git is not granted ... --command git
git clone https://github.com/example/repo.git
