"""The result: rankings with standard errors, as tables, files, text, HTML and plots."""

from ferrank.ranking.clusters import Clusters
from ferrank.ranking.model_error import ModelError
from ferrank.ranking.relevance import Relevance
from ferrank.ranking.result import Ranking
from ferrank.ranking.scores import ScoreRanking
from ferrank.ranking.stopping import Stop

__all__ = ["Clusters", "ModelError", "Ranking", "Relevance", "ScoreRanking", "Stop"]
