"""Agents beside people: records of people and their twins, and respondents who are asked again."""
