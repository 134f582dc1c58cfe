# Compiles each case of must_not_compile.cpp: case 0 must succeed, every other must fail.
foreach(case RANGE 0 7)
  execute_process(
    COMMAND ${COMPILER} -std=c++20 -fsyntax-only -DCASE=${case} -I${SOURCE_DIR} ${SOURCE_DIR}/tests/must_not_compile.cpp
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE errors)
  if(case EQUAL 0 AND NOT result EQUAL 0)
    message(FATAL_ERROR "case 0 does not compile:\n${errors}")
  elseif(case GREATER 0 AND result EQUAL 0)
    message(FATAL_ERROR "case ${case} compiles but must not")
  endif()
endforeach()
