from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, confusion_matrix
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.cluster import KMeans

X, y = make_classification(n_samples=200, n_features=6, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = make_pipeline(StandardScaler(), RandomForestClassifier(20, random_state=0, n_jobs=2)).fit(X_train, y_train)
print(round(accuracy_score(y_test, model.predict(X_test)), 3), confusion_matrix(y_test, model.predict(X_test)).tolist())
print(sorted(KMeans(3, n_init=2, random_state=1).fit(X).labels_.tolist())[:3])
