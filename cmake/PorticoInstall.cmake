# `cmake --install`: the program, and beside it what it looks for where it is installed (docs/deploy.md).
install(TARGETS portico RUNTIME DESTINATION bin)
if(TARGET portico-media)
  install(TARGETS portico-media RUNTIME DESTINATION libexec/portico)
endif()
install(DIRECTORY models/demo DESTINATION share/portico/models)
install(DIRECTORY pipelines DESTINATION share/portico)
# The launcher of SGLang's schedulers, and stages written in Python.
install(DIRECTORY python/portico DESTINATION share/portico/python FILES_MATCHING PATTERN "*.py"
        PATTERN "__pycache__" EXCLUDE)
install(FILES LICENSE DESTINATION share/doc/portico)
