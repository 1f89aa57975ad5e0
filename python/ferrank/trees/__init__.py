"""Decision and regression trees whose tests are chosen by Relief."""
