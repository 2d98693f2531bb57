"""Hashing methods, one file each; users type the file's name, with - for _.

Files that start with _ are shared: see their first lines.
"""
