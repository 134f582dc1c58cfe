# Helpers used by every folder: a layer library with the project's warnings, and text files compiled into a library.

add_library(clustersim_options INTERFACE)
target_include_directories(clustersim_options INTERFACE "${PROJECT_SOURCE_DIR}")
# -ffp-contract=off: the same bits on machines with and without fused multiply-add.
target_compile_options(clustersim_options INTERFACE -Wall -Wextra -Wconversion -Wshadow -ffp-contract=off)
if(CLUSTERSIM_WERROR)
  target_compile_options(clustersim_options INTERFACE -Werror)
endif()
if(CLUSTERSIM_SANITIZE)
  target_compile_options(clustersim_options INTERFACE -fsanitize=${CLUSTERSIM_SANITIZE} -fno-omit-frame-pointer
                                                      -fno-sanitize-recover=all)
  target_link_options(clustersim_options INTERFACE -fsanitize=${CLUSTERSIM_SANITIZE})
endif()

# clustersim_library(NAME folder... LINK libraries...): every .cpp directly in the folders.
function(clustersim_library name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;LINK" ${ARGN})
  set(sources)
  foreach(folder ${ARG_FOLDERS})
    file(GLOB found CONFIGURE_DEPENDS "${folder}/*.cpp" "${folder}/*.hpp")
    list(APPEND sources ${found})
  endforeach()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC clustersim_options fmt::fmt ${ARG_LINK})
endfunction()

# clustersim_embed(TARGET FUNCTION FOLDER): compiles FOLDER/**/*.toml into TARGET as
# std::span<const EmbeddedFile> clustersim::FUNCTION().
function(clustersim_embed target function folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${folder}" "${folder}/*.toml")
  list(SORT files)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp")
  set(depends)
  foreach(file ${files})
    list(APPEND depends "${folder}/${file}")
  endforeach()
  add_custom_command(
    OUTPUT "${output}"
    COMMAND ${CMAKE_COMMAND} "-DFUNCTION=${function}" "-DFOLDER=${folder}" "-DFILES=${files}" "-DOUTPUT=${output}" -P
            "${PROJECT_SOURCE_DIR}/.cmake/embed.cmake"
    DEPENDS ${depends} "${PROJECT_SOURCE_DIR}/.cmake/embed.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
